#!/bin/sh
# Ends with 1 while a module is of interest: while its lowering loads from a cache.
! kvcache-opt "$1" --convert-kvcache-to-memref | grep -q vector.load
