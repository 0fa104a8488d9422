// SPDX-License-Identifier: Apache-2.0
// Undefines the macros of direct_avx512.h and direct_avx2.h.
#undef DIRECT
#undef DIRECT_TARGET
#undef DIRECT_SUMS
#undef DIRECT_LANES
#undef DIRECT_STEPS
#undef DIRECT_FMA
#undef DIRECT_FMAV
#undef DIRECT_SPREAD
#undef DIRECT_MAX
#undef DIRECT_MIN
#undef DIRECT_LOAD
#undef DIRECT_STORE
#undef DIRECT_LANES_BELOW
#undef DIRECT_LOAD_PART
#undef DIRECT_STORE_PART
#undef DIRECT_NEXT
