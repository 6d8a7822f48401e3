import PrismProtocol

extension Admission {
  /// Steps 5 to 8 for a report of a type with filters: they see the meta before anything else does.
  static func decide(
    _ report: ScannedReport, in line: Span<UInt8>, _ filter: TypeFilter, _ accepted: Accepted, session: Session
  ) throws(Refusal) -> Admitted {
    try filter.count(userID: session.peer.accountID, unixMilliseconds: accepted.now)
    guard filter.readsMeta, case .members(let range, _) = report.meta else {
      return try admit(report, in: line, merge(report.meta, in: line, accepted, session), accepted, session)
    }
    guard range.count <= Limits.metaBytesMax else { throw metaTooLarge(range.count) }
    var meta = [UInt8(ascii: "{")]
    meta.append(copying: line, range)
    meta.append(UInt8(ascii: "}"))
    let id = report.reportID.map { Array($0.string(in: line).utf8) }
    let outcome = try filter.apply(to: meta, reportID: id, unixMilliseconds: accepted.now)
    if outcome.mark == .sampledOut {
      var admitted = Admitted(accepted, body: .rewritten(Rewritten(members: [])), metaBytes: 0)
      (admitted.mark, admitted.filteredBytes) = (outcome.mark, meta.count)
      admitted.leavesPayloadOut = try leavesOut(report.payload, in: line, accepted)
      return admitted
    }
    let filtered = try ScannedReport.Meta(scanning: outcome.meta.span, from: 0, reserved: session.reserved)
    let body = try rewritten(filtered, in: outcome.meta.span, accepted, session)
    var admitted = try admit(report, in: line, body, accepted, session)
    let bytesMax = admitted.metaBytes + (outcome.mark == nil ? 0 : ReportBatch.Repeat.membersBytesMax)
    guard bytesMax <= Limits.metaBytesMax else { throw metaTooLarge(bytesMax) }
    (admitted.mark, admitted.filteredBytes) = (outcome.mark, meta.count)
    return admitted
  }

  /// The members after their filters; a range of them is no range of the line.
  private static func rewritten(
    _ meta: ScannedReport.Meta, in text: Span<UInt8>, _ accepted: Accepted, _ session: Session
  ) throws(Refusal) -> Admitted.Body {
    if meta == .empty { return .rewritten(Rewritten(members: [])) }
    let body = try merge(meta, in: text, accepted, session)
    guard case .asWritten(let range) = body else { return body }
    var members: [UInt8] = []
    members.append(copying: text, range)
    return .rewritten(Rewritten(members: members))
  }
}
