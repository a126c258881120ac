"""What operators, REST and command line do, once: each a function of a pair of clusters."""
