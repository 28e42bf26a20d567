"""Tensorised circuits, whose values are arrays of rows × states: hidden trees and einsum networks."""
