/// An input whose requests come over HTTP. The ingest server reads them, within a user's share of the memory and of the turns.
public protocol HTTPInput: Sendable {
  /// The paths that it answers with POST.
  var paths: [String] { get }
  /// The largest body, in bytes, as it comes.
  var bodyBytesMax: Int { get }
  /// The name of a request in counters, of a small, fixed number of names.
  func name(of request: InputRequest) -> String
  /// Judges a request by its head. - Returns: nil: its body is read; else the status and the message of the answer.
  func refusal(of request: InputRequest) -> (status: Int, message: String)?
  /// Renders an answer to a request that is refused before it was read whole.
  func answer(to request: InputRequest, status: Int, message: String, retrySeconds: Int?) -> InputAnswer
  /// Answers a request, after the commit of its reports.
  func answer(_ request: InputRequest, from peer: ReportingPeer, to sink: any SubmissionSink) async -> InputAnswer
}
