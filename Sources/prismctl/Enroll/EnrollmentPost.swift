import PrismBase
import PrismConfig
import PrismCurl
import PrismProtocol

/// `POST /prism/enroll` of a collector, once. Redirects are not followed: the token is for this collector only.
struct EnrollmentPost {
  let url: String
  let token: String
  /// Certificates, PEM; nil: those of the system.
  let authorities: String?

  private static let timeout: Duration = .seconds(30)

  /// - Parameter url: of the collector, without a path.
  static func address(_ url: String?) throws(Failure) -> String {
    guard let url else { throw .usage("enroll: --url is missing") }
    guard let address = HTTPAddress(url), address.isPrivate else {
      throw .usage("--url: must be https, or http on 127.0.0.1, [::1] or localhost: the answer holds a key")
    }
    return address.text + "/prism/enroll"
  }

  /// - Returns: the key.
  /// - Throws: 69 if there is no answer, 77 for an answer that refuses the device or the token.
  func send(_ body: JSONValue) throws(Failure) -> EnrolledKey {
    var request = TransferRequest(
      url: url, headers: [("Content-Type", "application/json"), ("Authorization", "Bearer \(token)")],
      body: Array(body.text.utf8), timeout: Self.timeout)
    if let path = authorities {
      request.tls.caFile = HeldFile(path: path, content: Secret(try Files.read(path)))
    }
    let answer: CurlClient.Answer
    do throws(TransferError) { answer = try CurlClient().perform(request) } catch {
      throw Failure(Failure.unavailable, error.description)
    }
    let json = try? JSONValue(parsing: answer.body)
    guard answer.status == 200, let key = json.flatMap({ EnrolledKey($0) }) else {
      let message = json.flatMap { EnrolledKey.reason($0) } ?? "this is no collector of prism"
      throw Failure(
        [401, 403, 409].contains(answer.status) ? Failure.notPermitted : Failure.unavailable,
        "\(url) answers \(answer.status): \(message)")
    }
    return key
  }
}
