"""What all threads of a process share, used so that they do not disturb each other: locks and a fork, filters of warnings."""
