// Pointers in structs that the host fills: backend::cuda::pointer.
#pragma once

template <class T> using Pointer = T *;
template <class T> using ConstPointer = const T *;

namespace fmm {
struct State;
struct Squares;
} // namespace fmm
