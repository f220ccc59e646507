"""The intermediate representation: types, values, nodes, graphs, and how ops are declared."""
