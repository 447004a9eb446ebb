// The views by name: the one line that a new view needs besides its file.
import { overviewView } from './overview.ts'
import { serversView } from './servers.ts'
import type { View } from './view.ts'

export const views: Readonly<Record<string, View>> = {
  overview: overviewView,
  servers: serversView,
}
