// The C client as a module of this package.
#include "../../clients/c/prism.c"
