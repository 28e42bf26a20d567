"""All that is known about determinants below the IR: forms, bases, derivatives, counts, samples."""
