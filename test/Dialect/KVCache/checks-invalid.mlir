// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

// Syntax of check

func.func @missing_bound(%i: index, %n: index) {
  // expected-error @below {{expected 'below'}}
  kvcache.check %i, %n, "page id"
  return
}

// -----

func.func @missing_message(%i: index, %n: index) {
  // expected-error @below {{expected ','}}
  kvcache.check %i below %n "page id"
  return
}

// -----

func.func @message_of_another_kind(%i: index, %n: index) {
  // expected-error @below {{attribute 'what' failed to satisfy constraint: string attribute}}
  "kvcache.check"(%i, %n) {what = 5 : i32} : (index, index) -> ()
  return
}

// -----

func.func @check_of_an_integer(%i: i32, %n: index) {
  // expected-error @below {{operand #0 must be index, but got 'i32'}}
  "kvcache.check"(%i, %n) <{what = "page id"}> : (i32, index) -> ()
  return
}
