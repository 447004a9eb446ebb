// Runs while the hub is read or compiled (as a macro), never in a running hub: bundles a file for the browser, so that
// the text of it becomes part of the program. From source and in a compiled executable the result is the same.

/** The bundled, minified text of `entry`, a file below this folder. Throws what the bundler complains about. */
export function bundleForBrowser(entry: string): string {
  // In a macro the bundler cannot be called from inside; its command can.
  const built = Bun.spawnSync([
    process.execPath,
    'build',
    `${import.meta.dir}/${entry}`,
    '--target=browser',
    '--minify',
  ])
  if (built.exitCode !== 0) throw new Error(`cannot bundle ${entry}: ${built.stderr.toString()}`)
  return built.stdout.toString()
}
