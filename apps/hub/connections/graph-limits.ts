// How large a graph of connections may be that is answered, and how far from its root it reaches.
export const NODES_MAX = 2_000
export const NODES_USUAL = 500
export const DEPTH_MAX = 10
export const DEPTH_USUAL = 3
export const CYCLES_MAX = 100

/** The keys of all paths to the root together: a chain of thousands has paths of thousands. */
export const PATH_KEYS_MAX = 20_000
