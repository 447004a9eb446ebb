// The database role of a hub in the all-in-one: it owns its database and all objects in it, and has no other right. If
// the hub connected as a superuser, an SQL injection could read every file of the operating system's user and run
// programs as that user.
import postgres from 'postgres'

const ROLE = 'hub'

/**
 * Objects of the database, by the keyword of the `alter … owner to` that transfers them; each query returns their
 * quoted names. Objects of the system are left out.
 */
const OWNED: readonly { readonly command: string; readonly names: string }[] = [
  {
    command: 'schema',
    names: `select quote_ident(nspname) from pg_namespace
      where nspowner = $1 and nspname <> 'information_schema' and nspname !~ '^pg_'`,
  },
  {
    command: 'table',
    names: `select c.oid::regclass::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where c.relowner = $1 and c.relkind in ('r', 'p', 'v', 'm', 'f') and n.nspname <> 'information_schema' and n.nspname !~ '^pg_'`,
  },
  {
    // A sequence that belongs to a column changed its owner together with the table.
    command: 'sequence',
    names: `select c.oid::regclass::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where c.relowner = $1 and c.relkind = 'S' and n.nspname <> 'information_schema' and n.nspname !~ '^pg_'`,
  },
  {
    command: 'routine',
    names: `select p.oid::regprocedure::text from pg_proc p join pg_namespace n on n.oid = p.pronamespace
      where p.proowner = $1 and n.nspname <> 'information_schema' and n.nspname !~ '^pg_'
        and not exists (select 1 from pg_depend d where d.objid = p.oid and d.classid = 'pg_proc'::regclass and d.deptype = 'e')`,
  },
  {
    // An array type follows its element type, and the row type of a table follows the table.
    command: 'type',
    names: `select t.oid::regtype::text from pg_type t join pg_namespace n on n.oid = t.typnamespace
      left join pg_class c on c.oid = t.typrelid
      where t.typowner = $1 and (t.typtype in ('e', 'd', 'r') or (t.typtype = 'c' and c.relkind = 'c'))
        and n.nspname <> 'information_schema' and n.nspname !~ '^pg_'`,
  },
]

/**
 * Creates the hub's role with this password unless it exists, and makes it the owner of everything that the superuser
 * created in the database earlier. `url` is the superuser's; the result is the URL of the hub's role. A second call
 * changes nothing. No other client may be connected.
 */
export async function makeHubRole(url: string, password: string): Promise<string> {
  const client = postgres(url, { max: 1, connect_timeout: 10, onnotice: () => {}, prepare: false })
  try {
    // The statement contains a password, so the server must not log the statement when it fails. The empty search path
    // makes the queries return names with their schema.
    await client`select set_config('log_min_error_statement', 'panic', false), set_config('search_path', 'pg_catalog', false)`
    await client.begin(async tx => {
      const [known] = await tx`select 1 from pg_roles where rolname = ${ROLE}`
      if (!known) await tx.unsafe(`create role ${ROLE}`)
      const secret = password.replaceAll("'", "''")
      await tx.unsafe(
        `alter role ${ROLE} login nosuperuser nocreatedb nocreaterole noreplication nobypassrls password '${secret}'`,
      )
      const [database] = await tx<{ name: string }[]>`select quote_ident(current_database()) as name`
      await tx.unsafe(`alter database ${database!.name} owner to ${ROLE}`)
      const [me] = await tx<{ oid: number }[]>`select oid::int from pg_roles where rolname = current_user`
      for (const { command, names } of OWNED)
        for (const [name] of await tx.unsafe(names, [me!.oid]).values())
          await tx.unsafe(`alter ${command} ${String(name)} owner to ${ROLE}`)
    })
  } finally {
    await client.end({ timeout: 5 })
  }
  const own = new URL(url)
  own.username = ROLE
  own.password = encodeURIComponent(password)
  return own.href
}
