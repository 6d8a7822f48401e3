#pragma once
#include <zdict.h>
#include <zstd.h>
