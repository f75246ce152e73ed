// What calls are for, by their names: as samples of real data sets have them.
#include "analysis/account/batch_work.h"

#include <gtest/gtest.h>

namespace trainprof {
namespace {

constexpr std::string_view kLib = "/venv/lib/python3.12/site-packages";

BatchWork OfCall(std::string_view call) { return WorkOf(call, kBuiltInFile); }
BatchWork OfFunction(std::string_view function, std::string_view file) {
  return WorkOf(function, std::string(kLib) + std::string(file));
}

TEST(BatchWork, OfCallsIsKnownByTheirMethodsAndModules) {
  for (const char* call : {"open", "f.read", "self.file.readline", "os.pread", "np.fromfile",
                           ".read_bytes", "np.memmap", "sock.recv_into", "os.listdir"}) {
    EXPECT_EQ(OfCall(call), BatchWork::kReading) << call;
  }
  for (const char* call :
       {"cv2.imread", "cv2.imdecode", "zlib.decompress", "self._decompressor.decompress",
        "json.loads", "pickle.loads", "jpeg.decode", "decoder.decode"}) {
    EXPECT_EQ(OfCall(call), BatchWork::kDecoding) << call;
  }
  for (const char* call :
       {"cv2.resize", "cv2.cvtColor", "self.im.resize", "np.stack", "torch.from_numpy", ".astype",
        "image.float", "x.div_", "self.tokenizer.encode_batch"}) {
    EXPECT_EQ(OfCall(call), BatchWork::kTransforming) << call;
  }
  for (const char* call :
       {"time.sleep", "sum", "lock.acquire", "self.items.append", "readers", "", "."}) {
    EXPECT_EQ(OfCall(call), BatchWork::kOther) << call;
  }
}

TEST(BatchWork, OfPythonFunctionsIsKnownByTheirFiles) {
  EXPECT_EQ(OfFunction("open", "/PIL/Image.py"), BatchWork::kDecoding);
  EXPECT_EQ(OfFunction("Image.resize", "/PIL/Image.py"), BatchWork::kTransforming);
  EXPECT_EQ(OfFunction("ImageFile.load", "/PIL/ImageFile.py"), BatchWork::kDecoding);
  EXPECT_EQ(OfFunction("_open", "/PIL/JpegImagePlugin.py"), BatchWork::kDecoding);
  EXPECT_EQ(OfFunction("resize", "/torchvision/transforms/functional.py"),
            BatchWork::kTransforming);
  EXPECT_EQ(OfFunction("decode_jpeg", "/torchvision/io/image.py"), BatchWork::kDecoding);
  EXPECT_EQ(OfFunction("load", "/numpy/lib/_npyio_impl.py"), BatchWork::kReading);
  EXPECT_EQ(OfFunction("load", "/numpy/lib/npyio.py"), BatchWork::kReading);
  EXPECT_EQ(OfFunction("stack", "/numpy/_core/shape_base.py"), BatchWork::kTransforming);
  EXPECT_EQ(OfFunction("ParquetFile.read", "/pyarrow/parquet/core.py"), BatchWork::kReading);
  EXPECT_EQ(OfFunction("_load", "/torch/serialization.py"), BatchWork::kReading);
  EXPECT_EQ(OfFunction("collate", "/torch/utils/data/_utils/collate.py"), BatchWork::kCollating);
  EXPECT_EQ(OfFunction("fetch", "/torch/utils/data/_utils/fetch.py"), BatchWork::kOther);
  EXPECT_EQ(WorkOf("Path.read_bytes", "/usr/lib/python3.11/pathlib.py"), BatchWork::kReading);
  EXPECT_EQ(WorkOf("GzipFile.read", "/usr/lib/python3.11/gzip.py"), BatchWork::kDecoding);
  EXPECT_EQ(WorkOf("loads", "/usr/lib/python3.11/json/__init__.py"), BatchWork::kDecoding);
  EXPECT_EQ(WorkOf("wait", "/usr/lib/python3.11/threading.py"), BatchWork::kOther);
}

}  // namespace
}  // namespace trainprof
