// SIGHUP, from the first module of a process on: systemd counts it as started before it has read anything, and a reload
// that comes then must not end it. What is asked during a start is done once the start is over. Import this file first:
// before that, while the runtime loads, SIGHUP still ends the process. The agent reads its configuration at its start
// alone, and has a handler of its own that says so.

let reload: (() => void) | null = null
let isAsked = false

function onHangUp(): void {
  if (reload) reload()
  else isAsked = true
}

process.on('SIGHUP', onHangUp)

/** The start is over: SIGHUP runs `act` from now on, and at once where one came before. */
export function reloadOnHangUp(act: () => void): void {
  reload = act
  if (isAsked) act()
}

/** For commands that serve nothing: whoever closes the terminal ends them, as without this file. */
export function endOnHangUp(): void {
  process.off('SIGHUP', onHangUp)
  if (isAsked) process.kill(process.pid, 'SIGHUP')
}
