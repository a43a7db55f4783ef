"""Small models: the weights of a trained classifier in few bytes."""
