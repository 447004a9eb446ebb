// What the dialog of an exception is given; apart from it, since pages load it late.

export type ExceptionType = 'accepted' | 'false_positive'
export type ExceptionTarget = { readonly ids: readonly string[]; readonly names: readonly string[] }

export type ExceptionDialogProps = {
  readonly type: ExceptionType
  readonly target: ExceptionTarget
  readonly onClose: () => void
  readonly onDone: () => void
}
