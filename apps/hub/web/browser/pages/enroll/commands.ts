// The command that starts an agent, for each kind of system (apps/agent/README.md).

export const systems = ['linux', 'foreground', 'image'] as const
export type System = (typeof systems)[number]

export function commandFor(system: System, agentUrl: string, key: string): string {
  switch (system) {
    case 'linux':
      return `sudo ./agent install --collector-url ${agentUrl} --license ${key}`
    case 'foreground':
      return `SVC_COLLECTOR_URL=${agentUrl} \\\nSVC_LICENSE=${key} \\\n  ./agent run --state-dir ./agent-data`
    case 'image':
      return `./agent install --root ./image --collector-url ${agentUrl} --license ${key}`
  }
}
