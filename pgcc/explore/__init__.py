"""The explorer: a model as one self-contained web page that answers questions itself, without a server or a network."""
