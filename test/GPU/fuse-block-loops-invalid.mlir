// RUN: kvcache-opt %s --kvcache-fuse-block-loops --split-input-file --verify-diagnostics

// The number of threads is known.

func.func @f(%x: memref<?x64xf32>, %y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %n = memref.dim %x, %c0 : memref<?x64xf32>
  %z = arith.constant 0.0 : f32
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    // expected-error @below {{expects the constant bounds and steps of all loops over the threads of a block with a reduction to be equal}}
    %s = scf.parallel (%j) = (%c0) to (%n) step (%c1) init (%z) -> f32 {
      %v = memref.load %x[%i, %j] : memref<?x64xf32>
      scf.reduce(%v : f32) {
      ^bb0(%a: f32, %b: f32):
        %m = arith.maximumf %a, %b : f32
        scf.reduce.return %m : f32
      }
    }
    memref.store %s, %y[%i] : memref<?xf32>
  }
  return
}

// -----

// There is a thread.

func.func @f(%x: memref<?x64xf32>, %y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %n = memref.dim %x, %c0 : memref<?x64xf32>
  %z = arith.constant 0.0 : f32
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    // expected-error @below {{expects a thread in a block with a reduction, got bounds 0 and 0}}
    %s = scf.parallel (%j) = (%c0) to (%c0) step (%c1) init (%z) -> f32 {
      %v = memref.load %x[%i, %j] : memref<?x64xf32>
      scf.reduce(%v : f32) {
      ^bb0(%a: f32, %b: f32):
        %m = arith.maximumf %a, %b : f32
        scf.reduce.return %m : f32
      }
    }
    memref.store %s, %y[%i] : memref<?xf32>
  }
  return
}

// -----

// All loops have the same threads.

func.func @f(%x: memref<?x64xf32>, %y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %n = memref.dim %x, %c0 : memref<?x64xf32>
  %z = arith.constant 0.0 : f32
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %s = scf.parallel (%j) = (%c0) to (%c64) step (%c1) init (%z) -> f32 {
      %v = memref.load %x[%i, %j] : memref<?x64xf32>
      scf.reduce(%v : f32) {
      ^bb0(%a: f32, %b: f32):
        %m = arith.maximumf %a, %b : f32
        scf.reduce.return %m : f32
      }
    }
    // expected-error @below {{expects the constant bounds and steps of all loops over the threads}}
    scf.parallel (%j) = (%c0) to (%c1) step (%c1) {
      memref.store %s, %y[%i] : memref<?xf32>
    }
  }
  return
}

// -----

// Combiners take their arguments.

func.func @f(%x: memref<?x64xf32>, %y: memref<?xf32>, %w: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %n = memref.dim %x, %c0 : memref<?x64xf32>
  %z = arith.constant 0.0 : f32
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %s = scf.parallel (%j) = (%c0) to (%c64) step (%c1) init (%z) -> f32 {
      %v = memref.load %x[%i, %j] : memref<?x64xf32>
      scf.reduce(%v : f32) {
      ^bb0(%a: f32, %b: f32):
        // expected-error @below {{expects a reduction to combine its arguments and constants only}}
        %m = arith.addf %a, %w : f32
        scf.reduce.return %m : f32
      }
    }
    memref.store %s, %y[%i] : memref<?xf32>
  }
  return
}

// -----

// One thread writes memory, and others need no result of it.

func.func @f(%x: memref<?x64xf32>, %y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %n = memref.dim %x, %c0 : memref<?x64xf32>
  %z = arith.constant 0.0 : f32
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    // expected-error @below {{expects no result beside a reduction over threads: one thread executes it}}
    %old = memref.atomic_rmw addf %z, %y[%i] : (f32, memref<?xf32>) -> f32
    %s = scf.parallel (%j) = (%c0) to (%c64) step (%c1) init (%z) -> f32 {
      %v = memref.load %x[%i, %j] : memref<?x64xf32>
      scf.reduce(%v : f32) {
      ^bb0(%a: f32, %b: f32):
        %m = arith.maximumf %a, %b : f32
        scf.reduce.return %m : f32
      }
    }
    %t = arith.addf %s, %old : f32
    memref.store %t, %y[%i] : memref<?xf32>
  }
  return
}

// -----

// Memory effects are known.

func.func private @other()
func.func @f(%x: memref<?x64xf32>, %y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %n = memref.dim %x, %c0 : memref<?x64xf32>
  %z = arith.constant 0.0 : f32
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    // expected-error @below {{expects known memory effects beside a reduction over threads}}
    func.call @other() : () -> ()
    %s = scf.parallel (%j) = (%c0) to (%c64) step (%c1) init (%z) -> f32 {
      %v = memref.load %x[%i, %j] : memref<?x64xf32>
      scf.reduce(%v : f32) {
      ^bb0(%a: f32, %b: f32):
        %m = arith.maximumf %a, %b : f32
        scf.reduce.return %m : f32
      }
    }
    memref.store %s, %y[%i] : memref<?xf32>
  }
  return
}

// -----

// Private memory is not shared by threads.

func.func @f(%x: memref<?x64xf32>, %y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %n = memref.dim %x, %c0 : memref<?x64xf32>
  %z = arith.constant 0.0 : f32
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    // expected-error @below {{expects memory of a block with a reduction to be shared, got 'memref<4xf32>'}}
    %p = memref.alloca() : memref<4xf32>
    %s = scf.parallel (%j) = (%c0) to (%c64) step (%c1) init (%z) -> f32 {
      %v = memref.load %x[%i, %j] : memref<?x64xf32>
      scf.reduce(%v : f32) {
      ^bb0(%a: f32, %b: f32):
        %m = arith.maximumf %a, %b : f32
        scf.reduce.return %m : f32
      }
    }
    memref.store %s, %p[%c0] : memref<4xf32>
  }
  return
}

// -----

// A memory space that says 'private' is not shared either.

func.func @f(%x: memref<?x64xf32>, %y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %n = memref.dim %x, %c0 : memref<?x64xf32>
  %z = arith.constant 0.0 : f32
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    // expected-error @below {{expects memory of a block with a reduction to be shared, got 'memref<4xf32, #gpu.address_space<private>>'}}
    %p = memref.alloca() : memref<4xf32, #gpu.address_space<private>>
    %s = scf.parallel (%j) = (%c0) to (%c64) step (%c1) init (%z) -> f32 {
      %v = memref.load %x[%i, %j] : memref<?x64xf32>
      scf.reduce(%v : f32) {
      ^bb0(%a: f32, %b: f32):
        %m = arith.maximumf %a, %b : f32
        scf.reduce.return %m : f32
      }
    }
    memref.store %s, %p[%c0] : memref<4xf32, #gpu.address_space<private>>
  }
  return
}

// -----

// Blocks of a grid reduce in a second kernel.

func.func @f(%x: memref<?x64xf32>, %y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %n = memref.dim %x, %c0 : memref<?x64xf32>
  %z = arith.constant 0.0 : f32
  // expected-error @below {{expects no 'init' on the loop over thread blocks: a reduction over a grid needs a second kernel}}
  %r = scf.parallel (%i) = (%c0) to (%n) step (%c1) init (%z) -> f32 {
    %s = scf.parallel (%j) = (%c0) to (%c64) step (%c1) init (%z) -> f32 {
      %v = memref.load %x[%i, %j] : memref<?x64xf32>
      scf.reduce(%v : f32) {
      ^bb0(%a: f32, %b: f32):
        %m = arith.maximumf %a, %b : f32
        scf.reduce.return %m : f32
      }
    }
    scf.reduce(%s : f32) {
    ^bb0(%a: f32, %b: f32):
      %m = arith.addf %a, %b : f32
      scf.reduce.return %m : f32
    }
  }
  return
}

// -----

// Nor do the threads of a grid of one dimension reduce.

func.func @f(%x: memref<?xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %z = arith.constant 0.0 : f32
  // expected-error @below {{expects no 'init' on the loop over thread blocks: a reduction over a grid needs a second kernel}}
  %r = scf.parallel (%i) = (%c0) to (%n) step (%c1) init (%z) -> f32 {
    %v = memref.load %x[%i] : memref<?xf32>
    scf.reduce(%v : f32) {
    ^bb0(%a: f32, %b: f32):
      %m = arith.addf %a, %b : f32
      scf.reduce.return %m : f32
    }
  }
  return %r : f32
}
