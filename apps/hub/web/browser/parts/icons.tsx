// The shapes of states and of a few acts: drawn by the browser, coloured by the text around them.

const shapes = {
  critical: 'M5 1h6l4 4v6l-4 4H5l-4-4V5z',
  warning: 'M8 1.5 15.5 14.5H.5z',
  info: 'M14.5 8a6.5 6.5 0 1 1-13 0 6.5 6.5 0 0 1 13 0z',
  ok: 'm3 8.5 3.5 3.5L13 4.5',
  unknown: 'M14 8a6 6 0 1 1-12 0 6 6 0 0 1 12 0z',
  maintenance: 'M10.5 2a4 4 0 0 0-3.8 5.3L2 12l2 2 4.7-4.7A4 4 0 0 0 14 5.5L11.5 8 8 4.5z',
  silenced: 'M4 11V7a4 4 0 0 1 8 0v4l1.5 1.5h-11zM6.5 14h3M2 2l12 12',
  acknowledged: 'M5 1h6l4 4v6l-4 4H5l-4-4V5zM5 8l2 2.2L11 5.5',
  search: 'M7 2a5 5 0 1 0 0 10A5 5 0 0 0 7 2zm3.7 8.7 3.8 3.8',
  menu: 'M2 4h12M2 8h12M2 12h12',
  close: 'm3 3 10 10M13 3 3 13',
  down: 'm4 6 4 4 4-4',
  pause: 'M5 3v10M11 3v10',
  play: 'M4 2.5 13 8l-9 5.5z',
  views: 'M4 2h8v12l-4-3-4 3z',
  copy: 'M5 5h8v9H5zM3 11V2h8',
} as const

export type IconName = keyof typeof shapes

/** An icon beside a word that says the same: hidden from readers. */
export const Icon = ({ name }: { readonly name: IconName }) => (
  <svg class="icon" data-icon={name} viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
    <path d={shapes[name]} />
  </svg>
)
