// RUN: kvcache-opt %s --kvcache-check-host-code=capturable=1 --split-input-file --verify-diagnostics
// RUN: sed '/expected-error/d' %s | not kvcache-opt --kvcache-check-host-code --split-input-file 2>&1 \
// RUN:   | FileCheck %s --check-prefix=ACCESSES --implicit-check-not=captured

// Without 'capturable', only accesses are reported.

// ACCESSES-COUNT-4: error: {{.*}} op accesses memory of the device on the host

func.func @reads_an_argument(%lengths: memref<?xi32> {kvcache.name = "lengths"}, %i: index) -> i32 {
  // expected-error @below {{'memref.load' op accesses memory of the device on the host: argument 0 ('lengths') of @reads_an_argument; access it in a kernel, or copy it with 'gpu.memcpy'}}
  %n = memref.load %lengths[%i] : memref<?xi32>
  return %n : i32
}

// -----

func.func @writes_a_view(%n: i32, %lengths: memref<?xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %view = memref.subview %lengths[%c1] [1] [1] : memref<?xi32> to memref<1xi32, strided<[1], offset: ?>>
  %cast = memref.cast %view : memref<1xi32, strided<[1], offset: ?>> to memref<?xi32, strided<[1], offset: ?>>
  scf.for %i = %c0 to %c1 step %c1 {
    // expected-error @below {{'memref.store' op accesses memory of the device on the host: argument 1 of @writes_a_view}}
    memref.store %n, %cast[%i] : memref<?xi32, strided<[1], offset: ?>>
  }
  return
}

// -----

func.func @copies_on_the_host(%from: memref<4xi32>, %to: memref<4xi32>) {
  // expected-error @below {{'memref.copy' op accesses memory of the device on the host: argument 0}}
  memref.copy %from, %to : memref<4xi32> to memref<4xi32>
  return
}

// -----

func.func @reads_a_vector(%x: memref<4xi32>) -> i32 {
  %c0 = arith.constant 0 : index
  // expected-error @below {{'vector.load' op accesses memory of the device on the host: argument 0}}
  %v = vector.load %x[%c0] : memref<4xi32>, vector<4xi32>
  %e = vector.extract %v[0] : i32 from vector<4xi32>
  return %e : i32
}

// -----

// Memory of the host, sizes, and copies on the stream.

func.func private @helper(%x: memref<4xi32>) -> i32 {
  %c0 = arith.constant 0 : index
  %e = memref.load %x[%c0] : memref<4xi32>
  return %e : i32
}

func.func @uses_its_own_memory(%from: memref<4xi32>, %to: memref<4xi32>, %n: i32) -> i32 {
  %c0 = arith.constant 0 : index
  %own = memref.alloca() : memref<4xi32>
  memref.store %n, %own[%c0] : memref<4xi32>
  gpu.memcpy %to, %from : memref<4xi32>, memref<4xi32>
  %zero = arith.constant 0 : i32
  gpu.memset %to, %zero : memref<4xi32>, i32
  %e = func.call @helper(%own) : (memref<4xi32>) -> i32
  return %e : i32
}

// -----

func.func private @unknown()

func.func @allocates_and_waits() {
  // expected-error @below {{'memref.alloc' op allocates memory, and @allocates_and_waits is to be captured in a CUDA graph: expects only launches, and copies on the stream}}
  %m = memref.alloc() : memref<4xi32>
  // expected-error @below {{'memref.dealloc' op frees memory}}
  memref.dealloc %m : memref<4xi32>
  // expected-error @below {{'gpu.alloc' op allocates memory}}
  %d = gpu.alloc () : memref<4xi32>
  // expected-error @below {{'gpu.dealloc' op frees memory}}
  gpu.dealloc %d : memref<4xi32>
  %begin = gpu.wait async
  // expected-error @below {{'gpu.wait' op waits for the stream}}
  gpu.wait [%begin]
  // expected-error @below {{'func.call' op calls a function that is not known}}
  call @unknown() : () -> ()
  %token = gpu.wait async
  return
}
