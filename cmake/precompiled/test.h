// The same for tests.
#include "library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
