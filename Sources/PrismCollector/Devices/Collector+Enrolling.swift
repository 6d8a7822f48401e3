import PrismHTTP

// `POST /prism/enroll`: a device gets its key for an enrollment token (docs/collector.md, "Devices").
extension Collector {
  static let enrollPath = "/prism/enroll"

  /// - Throws: 400 for a bad body, 401 without a good token, 403 and 409 for the device. 404 if no key is derived for devices,
  ///   503 if the device can't be stored.
  func enroll(_ request: HTTPRequest) async throws(CollectorRefusal) -> HTTPResponse {
    do throws(CollectorRefusal) {
      let answer = try await Enrollment(self).answer(request)
      counts.countEnrollment("enrolled")
      return answer
    } catch {
      counts.countEnrollment("refused_\(error.status)")
      refusals.add(.init(refusal: error, from: request.peer.address, sender: nil))
      throw error
    }
  }
}
