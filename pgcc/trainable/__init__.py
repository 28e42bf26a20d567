"""The numbers of a circuit as one vector of unconstrained parameters, for `pgcc.learn` and `pgcc.torch`."""
