"""Chow–Liu trees and mixtures of them."""
