// Migrations are imported as text, so that the compiled executable carries them.
declare module '*.sql' {
  const text: string
  // biome-ignore lint/style/noDefaultExport: a text import has only the default export.
  export default text
}
