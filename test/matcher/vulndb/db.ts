// The executable that the tests of the database start: the commands of `matcher`, on the data directory that is named.
import { join } from 'node:path'
import { Command } from 'commander'
import { registerDbCommands, registerImportWorker } from '../../../apps/matcher/vulndb/commands.ts'

const program = new Command('matcher')
registerImportWorker(program)
registerDbCommands(program, ({ dataDir }) => ({
  folder: join(dataDir ?? '.', 'vulndb'),
  sources: [],
  mirror: process.env.TEST_MIRROR ?? null,
  publicKeyFile: process.env.TEST_PUBLIC_KEY ?? null,
  sourceBytesMax: 2 * 1024 ** 3,
}))
await program.parseAsync()
