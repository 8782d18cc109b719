// A tool that misbehaves is a message with a location.

// RUN: rm -rf %t && split-file %s %t && chmod +x %t/*/bin/*
// DEFINE: %{format} = cubin
// DEFINE: %{limit} = 100
// DEFINE: %{toolkit} = silent
// DEFINE: %{compile} = env KVCACHE_TOOL_TIMEOUT=%{limit} not kvcache-opt %t/kernel.mlir "--kvcache-to-ptx=chip=sm_90a format=%{format} toolkit=%t/%{toolkit}" 2>&1 | FileCheck %s

// RUN: %{compile} --check-prefix=SILENT
// SILENT: kernel.mlir:[[#]]:[[#]]: error: 'ptxas' succeeded, but wrote no output

// REDEFINE: %{toolkit} = failing
// RUN: %{compile} --check-prefix=FAILING
// FAILING: kernel.mlir:[[#]]:[[#]]: error: 'ptxas' failed (exit code 3): it printed nothing

// REDEFINE: %{toolkit} = latin
// RUN: %{compile} --check-prefix=LATIN
// LATIN: kernel.mlir:[[#]]:[[#]]: error: 'ptxas' failed (exit code 1): caf{{�$}}

// REDEFINE: %{toolkit} = crashing
// RUN: %{compile} --check-prefix=CRASHING
// CRASHING: kernel.mlir:[[#]]:[[#]]: error: 'ptxas' failed (Segmentation fault{{.*}}): it printed nothing

// REDEFINE: %{toolkit} = hanging
// REDEFINE: %{limit} = 1
// RUN: %{compile} --check-prefix=HANGING
// REDEFINE: %{limit} = 0
// RUN: %{compile} --check-prefix=LIMIT
// REDEFINE: %{limit} = soon
// RUN: %{compile} --check-prefix=LIMIT
// HANGING: kernel.mlir:[[#]]:[[#]]: error: 'ptxas' did not end within 1 s, the limit of KVCACHE_TOOL_TIMEOUT
// LIMIT:   kernel.mlir:[[#]]:[[#]]: error: expects KVCACHE_TOOL_TIMEOUT to be a positive number of seconds, got '{{0|soon}}'

// REDEFINE: %{limit} = 100
// REDEFINE: %{toolkit} = half
// REDEFINE: %{format} = fatbin
// RUN: %{compile} --check-prefix=HALF
// HALF: kernel.mlir:[[#]]:[[#]]: error: 'fatbinary' succeeded, but wrote no output

//--- kernel.mlir
gpu.module @kernels {
  gpu.func @kernel(%m: memref<8xf32>) kernel {
    gpu.return
  }
}

//--- silent/bin/ptxas
#!/bin/sh
exit 0
//--- failing/bin/ptxas
#!/bin/sh
exit 3
//--- latin/bin/ptxas
#!/bin/sh
printf 'caf\351\n' >&2
exit 1
//--- crashing/bin/ptxas
#!/bin/sh
kill -SEGV $$
//--- hanging/bin/ptxas
#!/bin/sh
exec sleep 60
//--- half/bin/ptxas
#!/bin/sh
for output; do :; done
echo cubin > "$output"
//--- half/bin/fatbinary
#!/bin/sh
exit 0
