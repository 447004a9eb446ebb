// The executable `matcher`: compares the packages of scan hosts with a vulnerability database and tells the hub.
import '../process/reload-on-hang-up.ts'
import { Command } from 'commander'
import { endOnHangUp } from '../process/reload-on-hang-up.ts'
import { productVersion } from './version.ts'

const program = new Command('matcher')
  .description('Compares the packages of scan hosts with a vulnerability database and tells the hub.')
  .version(productVersion)
  .option('--config <file>', 'configuration, YAML')
  .hook('preAction', (_, asked) => {
    if (asked.name() !== 'run') endOnHangUp()
  })
// What serves takes longer to load than one report to match: `match` is loaded alone.
if (process.argv[2] === 'match') (await import('./commands/match-command.ts')).registerMatchCommand(program)
else (await import('./commands/all-commands.ts')).registerCommands(program)
await program.parseAsync()
