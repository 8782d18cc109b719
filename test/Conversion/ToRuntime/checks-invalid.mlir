// RUN: kvcache-opt %s --pass-pipeline='builtin.module(func.func(convert-kvcache-checks))' --verify-diagnostics

// expected-error @below {{'func.func' op expects 'convert-kvcache-checks' to run on a builtin.module}}
func.func @check(%value: index, %bound: index) {
  kvcache.check %value below %bound, "page id"
  return
}
