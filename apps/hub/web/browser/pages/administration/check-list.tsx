// Several of many, each with its box: roles of a person, keys of a role, events of a webhook.

type Props = {
  readonly label: string
  readonly hint?: string
  readonly choices: readonly { readonly value: string; readonly text: string }[]
  readonly chosen: ReadonlySet<string>
  readonly onChange: (chosen: ReadonlySet<string>) => void
  readonly isDisabled?: boolean
  readonly errors?: readonly string[]
}

export function CheckList({ label, hint, choices, chosen, onChange, isDisabled = false, errors = [] }: Props) {
  const toggle = (value: string, isChosen: boolean): void => {
    const next = new Set(chosen)
    if (isChosen) next.add(value)
    else next.delete(value)
    onChange(next)
  }
  return (
    <fieldset class="choice check-list">
      <legend>{label}</legend>
      {hint === undefined ? null : <p class="muted">{hint}</p>}
      {choices.map(({ value, text }) => (
        <label key={value}>
          <input
            type="checkbox"
            checked={chosen.has(value)}
            disabled={isDisabled}
            onChange={event => toggle(value, event.currentTarget.checked)}
          />
          {text}
        </label>
      ))}
      {errors.map(error => (
        <p class="fault" key={error}>
          {error}
        </p>
      ))}
    </fieldset>
  )
}
