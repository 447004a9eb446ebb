// The shapes of states and of a few acts: drawn by the browser, coloured by the text around them.
import type { JSX } from 'preact'

const shapes = {
  critical: <path class="solid" d="M5 1h6l4 4v6l-4 4H5l-4-4V5z" />,
  warning: <path class="solid" d="M8 1.5 15.5 14.5H.5z" />,
  info: <circle class="solid" cx="8" cy="8" r="6.5" />,
  ok: <path d="m3 8.5 3.5 3.5L13 4.5" />,
  unknown: <circle cx="8" cy="8" r="6" stroke-dasharray="3 2.2" />,
  maintenance: <path d="M10.5 2a4 4 0 0 0-3.8 5.3L2 12l2 2 4.7-4.7A4 4 0 0 0 14 5.5L11.5 8 8 4.500z" />,
  silenced: <path d="M4 11V7a4 4 0 0 1 8 0v4l1.500 1.500h-11zM6.500 14h3M2 2l12 12" />,
  acknowledged: <path d="M5 1h6l4 4v6l-4 4H5l-4-4V5zM5 8l2 2.200L11 5.500" />,
  search: <path d="M7 2a5 5 0 1 0 0 10A5 5 0 0 0 7 2zm3.700 8.700L14.500 14.500" />,
  menu: <path d="M2 4h12M2 8h12M2 12h12" />,
  close: <path d="m3 3 10 10M13 3 3 13" />,
  down: <path d="m4 6 4 4 4-4" />,
  pause: <path d="M5 3v10M11 3v10" />,
  play: <path class="solid" d="M4 2.500 13 8l-9 5.500z" />,
  views: <path d="M4 2h8v12l-4-3-4 3z" />,
  copy: <path d="M5 5h8v9H5zM3 11V2h8" />,
} as const satisfies Readonly<Record<string, JSX.Element>>

export type IconName = keyof typeof shapes

/** An icon beside a word that says the same: hidden from readers. */
export const Icon = ({ name }: { readonly name: IconName }) => (
  <svg class="icon" data-icon={name} viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
    {shapes[name]}
  </svg>
)
