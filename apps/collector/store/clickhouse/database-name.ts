/** The name of a database as it may stand in SQL. */
export const isDatabaseName = (name: string): boolean => /^[A-Za-z_][A-Za-z0-9_]{0,62}$/.test(name)
