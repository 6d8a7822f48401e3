#include "../../../clients/c/prism.h"
