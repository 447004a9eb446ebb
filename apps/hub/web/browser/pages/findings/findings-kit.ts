// What pages about findings share, in one file for all of them, as kit.ts is for all pages.
import './about.tsx'
import './finding-columns.tsx'
