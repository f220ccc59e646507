"""The header of an exported model: its functions, their structures, and the codes that they give."""
from __future__ import annotations

from typing import List, Sequence, Tuple

from .entry import Entry, Field
from .weights import Weights

#: What a call may give besides the failures of the program: name, number, text.
CODES: Tuple[Tuple[str, int, str], ...] = (
    ("OK", 0, "no error"), ("NO_MEMORY", -1, "the arena is too small"),
    ("BAD_WEIGHTS", -2, "these are not the weights of this model"), ("NULL_POINTER", -3, "a pointer is null"),
    ("BAD_SIZE", -4, "a size is outside what the model is made for"),
    ("DAMAGED_WEIGHTS", -5, "the weights are damaged: their checksum is another one"))


class Interface:
    """What the user of a model meets in C.

    A model has ``NAME_init``, ``NAME_arena_bytes``, ``NAME_run`` and ``NAME_message``, a structure of its arguments and one of its
    results, and a code for everything that can go wrong; with gradients also ``NAME_backward``, with structures and an arena of its
    own, and ``NAME_update``.
    """

    def __init__(self, name: str, entries: Sequence[Entry], weights: Weights):
        self.name, self.macro, self.entries, self.weights = name, name.upper(), tuple(entries), weights
        self.draws = any(entry.draws for entry in entries)

    @property
    def updated(self) -> List[Tuple[Field, str]]:
        """The gradients of parameters, with the names of these."""
        return [(field, result.name[5:]) for entry in self.entries for field, result in zip(entry.results, entry.program.results)
                if result.name.startswith("grad/") and result.name[5:] in self.weights.arrays]

    @property
    def update_signature(self) -> str:
        """The head of the function that updates the weights."""
        return f"int {self.name}_update(void *weights, const {self.entries[-1].stem}_results *results, double rate)"

    def header(self, source: str) -> str:
        """The text of the header.  source: what the program was made of, for its first line."""
        name, macro = self.name, self.macro
        codes = "\n".join(f"    {f'{macro}_{code} = {number}{end}'.ljust(len(macro) + 20)}/* {text} */"
                          for (code, number, text), end in zip(CODES, [*"," * (len(CODES) - 1), " "]))
        entries = "\n".join(entry.declarations() for entry in self.entries)
        return f"""/* {source}, compiled by dy2static.

   {name}_run computes the results of the model for some arguments.  It calls nothing but the C library, takes no memory but the
   arena, and keeps nothing between two calls: any number of threads may run one model at the same time, each with an arena and
   structures of its own.  Arrays are in C order; results must not overlap arguments. */
#ifndef {macro}_H
#define {macro}_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

/* What functions give back.  A number above zero: the program cannot go on; {name}_message says why, and at which line. */
enum {{
{codes}
}};

/* The size of the weights, which begin at a multiple of 64 bytes. */
#define {macro}_WEIGHTS_BYTES {self.weights.nbytes}

typedef struct {{
    const unsigned char *weights;
}} {name}_model;
{self._random()}
/* Set the weights of a model.  They are the contents of the file of weights, and are not copied.  With null and 0 the model uses
   the weights in the source, if it has them.  They are read once: their checksum stands in the bytes 16 to 23.  With zeros there
   it is not compared. */
int {name}_init({name}_model *model, const void *weights, size_t bytes);

/* What a code means.  The text is constant. */
const char *{name}_message(int code);

{entries}{self._update()}
#ifdef __cplusplus
}}
#endif

#endif
"""

    def _random(self) -> str:
        if not self.draws:
            return ""
        return f"""
/* The state of random numbers: the generator of NumPy's `numpy.random.seed`, whose numbers it gives.  One for each thread. */
typedef struct {{
    uint32_t key[624];
    int32_t position, has_normal;
    double normal;
}} {self.name}_random;

void {self.name}_seed({self.name}_random *random, uint32_t seed);
"""

    def _update(self) -> str:
        if not self.updated:
            return ""
        return f"""
/* Take the gradients, times the rate, from the weights that models have: a step of stochastic gradient descent.  The weights have
   no checksum afterwards. */
{self.update_signature};
"""
