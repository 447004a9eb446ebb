// Which secrets a site makes for itself at its first start; they stand in its data directory from then on.
import { randomBytes } from 'node:crypto'
import type { DataDir } from './data-dir.ts'

const newSecret = (): string => randomBytes(32).toString('hex')

/** The secrets by name. */
export type Secrets = Record<string, string>

/** Those of the data directory, and the first ones where it is new: kept before anything is started with them. */
export function openSecrets(dataDir: DataDir): Secrets {
  const secrets: Secrets = {
    postgres_password: newSecret(),
    database_password: newSecret(),
    admin_token: newSecret(),
    matcher_admin_token: newSecret(),
    ...dataDir.secrets,
  }
  dataDir.saveSecrets(secrets)
  return secrets
}
