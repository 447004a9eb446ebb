/** Names as they may stand in SQL. */
export const isDatabaseName = (name: string): boolean => /^[A-Za-z_][A-Za-z0-9_]{0,62}$/.test(name)
export const isClusterName = (name: string): boolean => /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$/.test(name)
