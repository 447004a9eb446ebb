// The role that a hub of the all-in-one works as: the owner of its database and of all in it, and nothing beyond. As a
// superuser, whoever found a way to slip SQL in could read every file of the server's user and run programs as him.
import postgres from 'postgres'

const ROLE = 'hub'

/**
 * Objects of the database by the command that gives them away; each query tells their quoted names. Those of the system
 * are not among them.
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
    // Those of a column went with its table.
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
    // An array goes with its element, the row of a table with the table.
    command: 'type',
    names: `select t.oid::regtype::text from pg_type t join pg_namespace n on n.oid = t.typnamespace
      left join pg_class c on c.oid = t.typrelid
      where t.typowner = $1 and (t.typtype in ('e', 'd', 'r') or (t.typtype = 'c' and c.relkind = 'c'))
        and n.nspname <> 'information_schema' and n.nspname !~ '^pg_'`,
  },
]

/**
 * Makes the hub's role when it is not there, with this password, and gives it what a superuser made in the database
 * before there was one. `url` is that of the superuser; returns that of the hub. Repeating it changes nothing. Nobody
 * else may be connected.
 */
export async function makeHubRole(url: string, password: string): Promise<string> {
  const client = postgres(url, { max: 1, connect_timeout: 10, onnotice: () => {}, prepare: false })
  try {
    // The statement has a password in it: the server's log is not to tell of it when it fails. Names come with their
    // schema.
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
