#include "analysis/account/batch_work.h"

#include <algorithm>

#include "trace/base/names.h"

namespace trainprof {
namespace {

struct Words {
  BatchWork work;
  std::initializer_list<std::string_view> words;
};

using enum BatchWork;

// Functions without Python code: what stands behind the last dot. The first that fits counts.
const Words kMethods[] = {
    {kReading, {"open",      "read",        "read1",     "readline",  "readlines", "readinto",
                "readinto1", "read_bytes",  "read_text", "pread",     "preadv",    "fromfile",
                "memmap",    "mmap",        "recv",      "recv_into", "listdir",   "scandir",
                "stat",      "read_direct", "read_file", "from_file", "urlopen",   "get_object"}},
    {kDecoding, {"imread",      "imdecode",     "imdecodemulti", "decode",        "decode_jpeg",
                 "decode_png",  "decode_image", "decode_webp",   "decode_gif",    "decode_video",
                 "read_image",  "decompress",   "decompressobj", "unpackb",       "unpack",
                 "unpack_from", "loads",        "read_video",    "decode_to_yuv", "decompressor"}},
    {kTransforming,
     {"resize",
      "crop",
      "rotate",
      "transpose",
      "flip",
      "fliplr",
      "flipud",
      "warpAffine",
      "cvtColor",
      "permute",
      "normalize",
      "convert",
      "astype",
      "filter",
      "GaussianBlur",
      "remap",
      "pad",
      "affine",
      "perspective",
      "contiguous",
      "interpolate",
      "ascontiguousarray",
      "div_",
      "sub_",
      "mul_",
      "add_",
      "clip",
      "clamp",
      "float",
      "encode",
      "encode_batch",
      "tokenize",
      "warpPerspective"}},
};
// What such a call's name begins with, where its method says nothing.
const Words kModules[] = {
    {kTransforming, {"cv2.", "np.", "numpy.", "torch.", "F.", "TF.", "T.", "scipy.", "ndimage."}}};

// Python functions: parts of their files' paths, then of these what the function says.
const Words kFiles[] = {
    {kCollating, {"/torch/utils/data/_utils/collate.py", "/transformers/data/data_collator.py"}},
    {kReading,
     {"/torch/serialization.py",
      "/numpy/lib/npyio.py",
      "/numpy/lib/_npyio_impl.py",
      "/numpy/lib/format.py",
      "/numpy/lib/_format_impl.py",
      "/h5py/",
      "/zarr/",
      "/pyarrow/",
      "/fastparquet/",
      "/pandas/io/",
      "/lmdb/",
      "/pathlib.py",
      "/pathlib/",
      "/socket.py",
      "/ssl.py",
      "/http/client.py",
      "/urllib/",
      "/urllib3/",
      "/requests/",
      "/fsspec/",
      "/s3fs/",
      "/gcsfs/",
      "/botocore/",
      "/boto3/",
      "/safetensors/",
      "/datasets/table.py",
      "/datasets/arrow_reader.py"}},
    {kDecoding,
     {"/PIL/ImageFile.py",
      "ImagePlugin.py",
      "/imageio/",
      "/skimage/io/",
      "/torchvision/io/",
      "/turbojpeg",
      "/simplejpeg",
      "/gzip.py",
      "/bz2.py",
      "/lzma.py",
      "/zipfile",
      "/tarfile.py",
      "/_compression.py",
      "/zstandard/",
      "/json/decoder.py",
      "/json/__init__.py",
      "/pickle.py",
      "/msgpack/",
      "/torchaudio/",
      "/soundfile.py",
      "/librosa/core/audio.py",
      "/decord/",
      "/av/",
      "/csv.py",
      "/datasets/features/",
      "/cv2/"}},
    {kTransforming,
     {"/torchvision/transforms/", "/PIL/", "/albumentations/", "/imgaug/", "/kornia/", "/skimage/",
      "/scipy/", "/numpy/", "/librosa/", "/pandas/", "/transformers/tokenization",
      "/transformers/image_processing", "/transformers/models/", "/tokenizers/", "/sentencepiece/",
      "/tiktoken/", "/datasets/formatting/"}},
};

bool EndsPath(std::string_view file, std::string_view part) {
  return part.ends_with(".py") ? file.ends_with(part) : file.find(part) != std::string_view::npos;
}

BatchWork WorkOfCall(std::string_view call) {
  const std::string_view method = call.substr(call.rfind('.') + 1);
  for (const Words& words : kMethods) {
    if (std::find(words.words.begin(), words.words.end(), method) != words.words.end()) {
      return words.work;
    }
  }
  for (const Words& words : kModules) {
    for (const std::string_view module : words.words) {
      if (call.starts_with(module)) return words.work;
    }
  }
  return kOther;
}

}  // namespace

BatchWork WorkOf(std::string_view function, std::string_view file) {
  if (file == kBuiltInFile) return WorkOfCall(function);
  // Opening an image reads no more than its header.
  if (file.ends_with("/PIL/Image.py") && (function == "open" || function.ends_with("frombytes"))) {
    return kDecoding;
  }
  for (const Words& words : kFiles) {
    for (const std::string_view part : words.words) {
      if (EndsPath(file, part)) return words.work;
    }
  }
  return kOther;
}

BatchWork WorkOf(const Trace& trace, StackId stack) {
  BatchWork work = kOther;
  trace.stacks.ForEachFrame(stack, [&](const CallFrame& frame) {
    const std::string_view function = trace.Text(frame.function);
    const std::string_view file = trace.Text(frame.file);
    if (frame.is_user || IsForkedStart(function, file)) return false;
    work = WorkOf(function, file);
    return work == kOther;
  });
  return work;
}

}  // namespace trainprof
