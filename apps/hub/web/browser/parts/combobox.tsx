// A text field with a list of what it can be completed with (the ARIA pattern of a combobox): filter, palette and
// pickers are made of it. The field keeps the focus; arrows move through the list, Enter takes, Escape closes.
import { type ComponentChildren, Fragment } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'

export type ComboboxOption = {
  readonly id: string
  readonly content: ComponentChildren
  /** Read out and shown as the option's text. */
  readonly text: string
}

type Props = {
  readonly label: string
  readonly value: string
  readonly options: readonly ComboboxOption[]
  readonly onInput: (value: string) => void
  readonly onChoose: (option: ComboboxOption) => void
  /** Enter without a chosen option. */
  readonly onEnter?: () => void
  readonly onEscape?: () => void
  readonly placeholder?: string | undefined
  readonly inputId?: string | undefined
  readonly isAlwaysOpen?: boolean
  /** The first option is chosen already, as in a palette. */
  readonly takesFirst?: boolean
  readonly title?: string | undefined
}

export function Combobox(props: Props) {
  const { options, isAlwaysOpen = false, takesFirst = false } = props
  const listId = useId()
  const input = useRef<HTMLInputElement>(null)
  const [isFocused, setFocused] = useState(false)
  const [isDismissed, setDismissed] = useState(false)
  const [at, setAt] = useState(takesFirst ? 0 : -1)
  const isOpen = options.length > 0 && (isAlwaysOpen || (isFocused && !isDismissed))
  const chosen = Math.min(at, options.length - 1)
  useEffect(() => {
    document.getElementById(`${listId}-${chosen}`)?.scrollIntoView({ block: 'nearest' })
  }, [listId, chosen])

  const choose = (option: ComboboxOption): void => {
    setAt(takesFirst ? 0 : -1)
    props.onChoose(option)
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    const option = isOpen ? options[chosen] : undefined
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      const step = event.key === 'ArrowDown' ? 1 : -1
      setDismissed(false)
      setAt(options.length === 0 ? -1 : (Math.max(chosen, -1) + step + options.length) % options.length)
    } else if (event.key === 'Enter') {
      if (option) choose(option)
      else props.onEnter?.()
    } else if (event.key === 'Escape') {
      if (isOpen && !isAlwaysOpen) setDismissed(true)
      else props.onEscape?.()
      if (isAlwaysOpen) return
    } else return
    event.preventDefault()
    event.stopPropagation()
  }
  return (
    <div class="combobox">
      <input
        ref={input}
        id={props.inputId}
        type="text"
        role="combobox"
        aria-label={props.label}
        aria-expanded={isOpen}
        aria-controls={isOpen ? listId : undefined}
        aria-autocomplete="list"
        aria-activedescendant={isOpen && chosen >= 0 ? `${listId}-${chosen}` : undefined}
        autoComplete="off"
        spellcheck={false}
        placeholder={props.placeholder}
        title={props.title}
        value={props.value}
        onFocus={() => setFocused(true)}
        onBlur={() => {
          setFocused(false)
          setDismissed(false)
        }}
        onInput={event => {
          setDismissed(false)
          setAt(takesFirst ? 0 : -1)
          props.onInput(event.currentTarget.value)
        }}
        onKeyDown={onKeyDown}
      />
      {isOpen ? (
        <OptionList id={listId} label={props.label} options={options} chosen={chosen} onChoose={choose} />
      ) : null}
    </div>
  )
}

type ListProps = {
  readonly id: string
  readonly label: string
  readonly options: readonly ComboboxOption[]
  readonly chosen: number
  readonly onChoose: (option: ComboboxOption) => void
}

const OptionList = ({ id, label, options, chosen, onChoose }: ListProps) => (
  <div class="options" id={id} role="listbox" aria-label={label}>
    {options.map((option, index) => (
      <Fragment key={option.id}>
        {/* The field has the focus and the keys; the pointer must not take it away. */}
        <div
          id={`${id}-${index}`}
          role="option"
          tabIndex={-1}
          aria-selected={index === chosen}
          onMouseDown={event => event.preventDefault()}
          onClick={() => onChoose(option)}
          onKeyDown={() => {}}
        >
          {option.content}
        </div>
      </Fragment>
    ))}
  </div>
)
