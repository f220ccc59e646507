/* Convolutions and their derivatives: the functions of the library that convolutions.py builds.

   Nothing is unrolled into patches.  The image of one group is copied once, with its padding, into planes
   (dy2static_planes.h), so that the rows of the matrix of patches are the planes themselves at some offset, and a product
   reads them by a table of offsets (`tile`).  Where that would compute many places that are dropped, those that count are
   gathered before (dy2static_gathered_products.h).

   Before the include: DY_T. */
#include "dy2static_forward_windows.h"
#include "dy2static_transposed_windows.h"
#include "dy2static_filter_gradients.h"
