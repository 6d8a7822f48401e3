import PrismAdmission

extension IngestConnection {
  var isWithinRequest: Bool {
    if foreign != nil { return false }
    if let stream { return stream.value.heldBytes > 0 && !stream.value.hasMessage && owed.handedBytes == nil }
    return !opening.isEmpty || http?.value.isWithinRequest ?? conversation?.value.isWithinRequest ?? false
  }
  var mustClose: Bool {
    if foreign != nil { return true }
    if let stream {
      return (stream.value.mustClose || isStreamEnded) && owed.handedBytes == nil && !stream.value.hasMessage
    }
    return conversation?.value.mustClose == true || http?.value.mustClose == true
  }
  /// Nothing is owed to the client, and nothing of it is on its way.
  var isSettled: Bool {
    let isIdle = !isHanded && stream?.value.hasMessage != true && http?.value.isAwaitingAnswers != true
    return isIdle && (mustClose || !hasInput) && conversation?.value.isSettled != false && unsentBytes == 0
  }
}
