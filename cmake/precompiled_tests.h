#include "precompiled_code.h"
#ifdef __cplusplus
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#endif
