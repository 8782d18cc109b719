// LLVM's counters have another size with assertions, so code without NDEBUG
// would take those of a libLLVM that was compiled with it for others: include
// this first.
#if defined(__cplusplus) && !defined(NDEBUG)
#define NDEBUG
#include "llvm/ADT/Statistic.h"
#undef NDEBUG
#endif
