// The descriptors 0, 1 and 2 of a program that somebody may have started without one of them.
#ifndef CLRSAMPLER_OS_STANDARD_DESCRIPTORS_H_
#define CLRSAMPLER_OS_STANDARD_DESCRIPTORS_H_

namespace clrsampler {

// Puts /dev/null where one is closed. Otherwise the next file that is opened takes its place: a result would be
// standard error, and messages would go into it. In the place of input nothing can be read, and in that of output
// nothing can be written, so that their use stays an error. Text for standard error is gone.
//
// The first thing that a program does. False: it can't be done.
bool HoldStandardDescriptors();

// Whether the program was started with a standard output.
bool HasStandardOutput();

}  // namespace clrsampler

#endif  // CLRSAMPLER_OS_STANDARD_DESCRIPTORS_H_
