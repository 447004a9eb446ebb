// Style sheets are imported for the bundler, which puts them into the page's one sheet.
declare module '*.css'
