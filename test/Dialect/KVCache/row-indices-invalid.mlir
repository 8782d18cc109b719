// RUN: kvcache-opt %s --split-input-file --verify-diagnostics
// XFAIL: *

// (C1) of row_indices

// expected-error @below {{expects page_size to be positive, got 0}}
func.func private @c1_rows_of_no_page_size(!kvcache.row_indices<rows = 128, page_size = 0>)

// -----

// A bundle holds a row for each page.
// expected-error @below {{expects at most 1024 pages, got 9223372036854775807}}
func.func private @rows_of_too_many_pages(!kvcache.row_indices<rows = 9223372036854775807, page_size = 1>)
