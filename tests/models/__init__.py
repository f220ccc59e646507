"""Models as users of Chainer write them, small: one family per file, all in `ZOO`.

    python tests/models [NAME ...]      # train them eagerly and compiled, and print what became of each
"""
